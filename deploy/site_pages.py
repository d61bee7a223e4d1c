"""What MkDocs is told beside `mkdocs.yml`: the papers at the root of the repository are pages too."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT_PAPERS = ("AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Lay the papers of the root beside the pages of docs/."""
    root = Path(config.config_file_path).parent
    for name in ROOT_PAPERS:
        # A link in them leads from the root, and there docs/ is what is the root of the site.
        text = re.sub(r"\]\(docs/", "](", (root / name).read_text("utf-8"))
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn a page's links to papers of the root into links to the pages that they are here."""
    return re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, ROOT_PAPERS))})", r"](\1", markdown)
