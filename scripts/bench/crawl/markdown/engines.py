"""Engines in Python that Markdown is measured against: HTML of pages in, Markdown of each by each engine out."""
import io, json, sys
import html2text, markdownify
from markitdown import MarkItDown

markitdown = MarkItDown()
ENGINES = {
    "markdownify": lambda html: markdownify.markdownify(html, heading_style="ATX", strip=["script", "style", "title"]),
    "html2text": lambda html: html2text.HTML2Text(bodywidth=0).handle(html),
    "markitdown": lambda html: markitdown.convert_stream(io.BytesIO(html.encode()), file_extension=".html").text_content,
}
pages = json.load(sys.stdin)
json.dump({name: [convert(html) for html in pages] for name, convert in ENGINES.items()}, sys.stdout)
