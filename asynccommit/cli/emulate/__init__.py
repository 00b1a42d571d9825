"""Commands that serve an emulator of a store on this machine."""

from __future__ import annotations

from asynccommit.cli.emulate.adls import adls
from asynccommit.cli.emulate.gcs import gcs
from asynccommit.cli.emulate.s3_express import s3_express
from asynccommit.cli.emulate.s3_proxy import s3_proxy
from asynccommit.cli.program import Program

app = Program(
    name="emulate",
    help="Serve an emulator of a store on this machine until interrupted.",
    no_args_is_help=True,
)


@app.callback()
def _stores() -> None:
    """Serve an emulator of a store on this machine until interrupted."""


app.command()(adls)
app.command()(gcs)
app.command()(s3_express)
app.command()(s3_proxy)
