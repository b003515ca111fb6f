#!/usr/bin/env python3
"""Runs the tests of a CMake preset and reports how they went.

    scripts/run_tests.py PRESET [CTEST_ARGUMENT...]

A failed test that talks to processes or sockets (label `service`) runs once more, after all others. The report is
printed last and kept in build/PRESET/test-report.txt: tests that needed their second run (each of these is a defect),
skipped tests and cases with the reason, the last lines of each failed test's output, and the slowest tests. Exit code 1
if a test failed, 2 if none ran.
"""
import collections
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

RETRIED_LABEL = 'service'
# ctest keeps 1 KiB of a passed test's output by default, but skipped cases may be anywhere in it.
KEPT_BYTES = 1 << 20
LINES_OF_A_FAILURE = 40
SLOWEST = 10


def run(preset, results, arguments):
    """Runs ctest; returns the results by name of test: (seconds, failed, skipped, output)."""
    results.unlink(missing_ok=True)
    sizes = ['--test-output-size-passed', str(KEPT_BYTES), '--test-output-size-failed', str(KEPT_BYTES)]
    subprocess.run(['ctest', '--preset', preset, '--output-junit', str(results), *sizes, *arguments], check=False)
    if not results.exists():
        return {}
    return {case.get('name'): (float(case.get('time', 0)), *outcome(case), case.findtext('system-out') or '')
            for case in xml.parse(results).iter('testcase')}


def outcome(case):
    """Returns whether a test failed, and whether it skipped itself. A test whose program is missing has failed."""
    skipped = case.get('status') == 'notrun' and case.find('skipped').get('message').startswith('SKIP_')
    return case.get('status') in ('fail', 'notrun') and not skipped, skipped


def failed(results):
    return sorted(name for name, (_, bad, _, _) in results.items() if bad)


def skips(output, whole):
    """Returns what a test reports of its skips, without repetition: how many cases skipped themselves, and why."""
    counts, reason = collections.Counter(), ''
    lines = iter(output.splitlines())
    for line in lines:
        if line.endswith(': Skipped'):
            # GoogleTest prints the reason below this line, and the case's name after the reason.
            reason = next(lines, '').strip()
        elif re.match(r'\[  SKIPPED \] .* \(\d+ ms\)$', line):
            counts[reason] += 1
        elif by_pytest := re.match(r'SKIPPED \[(\d+)\] \S+: (.*)', line):
            counts[by_pytest[2]] += int(by_pytest[1])
    if whole and not counts:
        return [(output.strip().splitlines() or ['?'])[-1]]
    return [f'{count} of its cases: {reason or "no reason given"}' for reason, count in counts.items()]


def report(first, second):
    lines = []
    for name in failed(first):
        if name in second and name not in failed(second):
            lines.append(f'passed in its second run only: {name}')
    lasting = [name for name in failed(first) if name not in second or name in failed(second)]
    skipped = [name for name, (_, _, skipped, _) in first.items() if skipped]
    for name, result in first.items():
        lines += [f'skipped: {name}: {skip}' for skip in skips(result[3], name in skipped)]
    passed = len(first) - len(lasting) - len(skipped)
    lines.append(f'{passed} of {len(first)} tests passed, {len(skipped)} were skipped, {len(lasting)} failed')
    for name in lasting:
        output = (second.get(name) or first[name])[3].rstrip().splitlines()
        lines += ['', f'FAILED: {name}', *(f'  {line}' for line in output[-LINES_OF_A_FAILURE:])]
    slowest = sorted(((seconds, name) for name, (seconds, *_) in first.items()), reverse=True)[:SLOWEST]
    lines += ['', 'slowest tests:', *(f'{seconds:8.1f} s  {name}' for seconds, name in slowest)]
    return lasting, '\n'.join(lines) + '\n'


def main():
    preset, arguments = sys.argv[1], sys.argv[2:]
    folder = pathlib.Path('build', preset).resolve()
    first = run(preset, folder / 'tests.xml', arguments)
    if not first:
        return 2
    second = {}
    if failed(first):
        names = '|'.join(re.escape(name) for name in failed(first))
        second = run(preset, folder / 'tests-again.xml', ['-R', f'^({names})$', '-L', RETRIED_LABEL])
    lasting, text = report(first, second)
    text = f'\ntests of {preset}:\n{text}'
    (folder / 'test-report.txt').write_text(text)
    print(text, end='', flush=True)
    return 1 if lasting else 0


if __name__ == '__main__':
    sys.exit(main())
