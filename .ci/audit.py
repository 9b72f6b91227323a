"""Ask OSV about known holes in the locked releases; being offline is said and is no failure.

python .ci/audit.py PYTHON     PYTHON has pip-audit; exit 1 where a release is known to be bad
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).with_name("requirements.lock")
COMMAND = ("-m", "pip_audit", "--require-hashes", "--disable-pip", "--progress-spinner=off")
OFFLINE = ("Connect", "connect", "timed out", "resolve", "Max retries", "Proxy", "SSLError")


def main(python: str) -> int:
    """Print the findings, or why there are none to be had."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        service = ("--vulnerability-service", "osv", "--timeout", "15")
        done = subprocess.run(
            [python, *COMMAND, *service, "-r", str(LOCK), "-f", "json", "-o", str(report)],
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            if any(sign in done.stderr for sign in OFFLINE):
                print(f"audit: not done, the service cannot be reached ({last[0][:120]})")
                return 0
            print(f"audit: pip-audit failed: {last[0]}")
            return 1
        found = json.loads(report.read_text())["dependencies"]
    bad = [
        (each["name"], each["version"], hole) for each in found for hole in each.get("vulns", ())
    ]
    for name, version, hole in bad:
        print(f"{name} {version}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or '?'}")
    print(f"audit: {len(found)} releases, {len(bad)} known holes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
