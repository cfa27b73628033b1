"""python3 stage_pages.py ROOT PAGES: copies all pages of the repository, and the files that they show or link to, into the
folder PAGES, in the tree that they lie in; from there mkdocs makes a site."""

import pathlib
import re
import shutil
import sys

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
LEFT_OUT = ("tests/fuzz/corpus/", "build", "out/", "node_modules/", ".")


def pages(root):
    for path in sorted(root.rglob("*.md")):
        if not path.relative_to(root).as_posix().startswith(LEFT_OUT):
            yield path


def shown_by(page, root):
    """The repository's files that a page links to, pages aside. ValueError for one outside of it."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve()
        if file.suffix == ".md" or file.is_dir():
            continue
        if not file.is_relative_to(root):
            raise ValueError(f"{page}: {target} is outside of the repository")
        if file.exists():
            yield file


def main():
    root, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if out.exists():
        shutil.rmtree(out)
    found = list(pages(root))
    for file in sorted({*found, *(shown for page in found for shown in shown_by(page, root))}):
        copy = out / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


if __name__ == "__main__":
    main()
