"""One root seed: generators by name that do not disturb each other."""

from __future__ import annotations

from asynccommit.testing.models.seeds import Seeds


def test_a_name_has_one_generator() -> None:
    """Who asks twice for a name draws on."""
    seeds = Seeds(1)

    assert seeds.rng("weather") is seeds.rng("weather")


def test_names_and_roots_differ() -> None:
    """Each name and each root has numbers of its own, the same every time."""
    drawn = {(root, name): Seeds(root).rng(name).random() for root in (1, 2) for name in ("a", "b")}

    assert len({*drawn.values()}) == 4
    assert Seeds(2).rng("b").random() == drawn[2, "b"]


def test_generators_do_not_disturb_each_other() -> None:
    """What one draws changes nothing for another."""
    quiet, busy = Seeds(1), Seeds(1)
    busy.rng("other").random()

    assert quiet.rng("mine").random() == busy.rng("mine").random()


def test_next_numbers_tell_how_much_was_drawn() -> None:
    """One number more that was drawn shows, of this generator alone."""
    one, other = Seeds(1), Seeds(1)
    for seeds in (one, other):
        seeds.rng("a").random()
        seeds.rng("b").random()
    other.rng("a").random()
    ours, theirs = one.next_numbers(), other.next_numbers()

    assert [*ours] == ["a", "b"]
    assert ours["a"] != theirs["a"]
    assert ours["b"] == theirs["b"]


def test_ids_are_new_each_time() -> None:
    """Ids are 32 hexadecimal digits, no two the same."""
    new_id = Seeds(1).ids("ids")
    made = [new_id() for _ in range(100)]

    assert len({*made}) == 100
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in made)
