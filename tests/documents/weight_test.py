"""python3 weight_test.py ROOT: what the repository weighs, which every clone and every copy to another machine carries."""

import collections
import pathlib
import subprocess
import sys

MOST_FILES_OF_REPORTS = 1000
MOST_MIB = 40
NO_REPOSITORY = 77  # ctest's word for a test that cannot run here


def tracked(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode != 0:
        print(f"{root} is no git repository: nobody knows which files belong to it")
        sys.exit(NO_REPOSITORY)
    files = [root / name for name in listed.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def main():
    root = pathlib.Path(sys.argv[1])
    files = tracked(root)
    sizes = {file: file.stat().st_size for file in files}
    of_reports = [file for file in files if file.is_relative_to(root / "reports")]
    mib = sum(sizes.values()) / 2**20
    print(f"{len(files)} files, {mib:.1f} MiB; below reports {len(of_reports)} files")
    by_folder = collections.Counter()
    for file, size in sizes.items():
        by_folder["/".join(file.relative_to(root).parts[:3][:-1] or ["."])] += size
    wrong = []
    if mib > MOST_MIB:
        wrong.append(f"{mib:.1f} MiB are more than {MOST_MIB}: the heaviest are " +
                     ", ".join(f"{name} ({size / 2**20:.1f})" for name, size in by_folder.most_common(5)) +
                     "; many small files are one archive (reports/blind), large tables are gzip'ed (reports/measured)")
    if len(of_reports) > MOST_FILES_OF_REPORTS:
        wrong.append(f"reports has {len(of_reports)} files, more than {MOST_FILES_OF_REPORTS}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
