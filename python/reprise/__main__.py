# SPDX-License-Identifier: Apache-2.0
"""`python -m reprise` and the command `reprise` of the wheel are the program itself."""
import os
import pathlib
import sys


def main():
    inside = pathlib.Path(__file__).resolve().parent / "bin" / "reprise"
    program = os.environ.get("REPRISE_PROGRAM") or str(inside)
    try:
        os.execv(program, ["reprise", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"reprise: error: cannot start '{program}': {error.strerror}; install the wheel, or set REPRISE_PROGRAM")


if __name__ == "__main__":
    main()
