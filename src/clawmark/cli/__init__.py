"""The command line: parse the arguments, run one verb and return its exit code.

Only the module of the requested verb is imported, because a cold search must not pay for the
others. Exit codes: 0 done, 1 a check found something, 2 usage or configuration, 3 unavailable,
4 denied, 5 damaged, and 128 + n after signal n."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from clawmark.cli import output, process
from clawmark.cli.arguments import asks_for_json, leading_flags, make_parser
from clawmark.cli.verbs import VERBS, answer_without_verb, module_of, unknown_verb
from clawmark.model.errors import ClawmarkError
from clawmark.system import log_file

__all__ = ["VERBS", "main", "module_of", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without `argv`, also set up and end the process."""
    if argv is not None:
        return run(list(argv))
    process.prepare(sys.argv[1:])
    return process.end(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command and return its exit code; what opened a memory is logged."""
    log_file.stop()
    started = time.monotonic()
    code, error = _run(argv)
    if log_file.current() is not None:
        verb = next(iter(argv[len(leading_flags(argv)) :]), "")
        milliseconds = (time.monotonic() - started) * 1000
        log_file.write(
            log_file.level_of(error),
            f"clawmark {verb}: exit code {code} after {milliseconds:,.0f} ms",
            log_file.error_lines(error) if error is not None else (),
        )
        log_file.stop()
    return code


def _run(argv: list[str]) -> tuple[int, Exception | None]:
    """Run one command; every error becomes one message, an exit code and a value for the log."""
    as_json = asks_for_json(argv)
    output.set_quiet(False)
    output.warn(())
    try:
        code = dispatch(argv)
        output.flush()
        return code, None
    except ClawmarkError as error:
        return output.report(error, as_json=as_json), error
    except output.Stopped as stopped:
        return stopped.exit_code, None
    except SystemExit as ended:  # argparse, after --help
        return ended.code if isinstance(ended.code, int) else 0, None
    except KeyboardInterrupt:
        return output.interrupted(), None
    except Exception as error:  # boundary of the process: the user gets a message, not a traceback
        return output.report_unexpected(error, as_json=as_json), error


def dispatch(argv: list[str]) -> int:
    """Find the verb, parse its arguments and run it."""
    before = leading_flags(argv)
    rest = argv[len(before) :]
    verb = rest[0] if rest else ""
    if verb in ("", "-h", "--help", "help", "-V", "--version"):
        return answer_without_verb(rest, as_json=asks_for_json(before))
    if verb not in VERBS:
        raise unknown_verb(verb)
    module = module_of(verb)
    parser = make_parser(verb, VERBS[verb][1], module)
    is_mixed = getattr(module, "INTERMIXED", False)
    parse = parser.parse_intermixed_args if is_mixed else parser.parse_args
    args = parse([*before, *rest[1:]])
    output.set_quiet(args.quiet)
    code: int = module.run(args)
    return code
