"""Crawls a site with Scrapy, once per process, and keeps the same of each page as Trunkline: address, title and HTML."""

import json
import resource
import sys
import time
from urllib.parse import urljoin

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

start, limit, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
links = LinkExtractor(allow=urljoin(start, "/"))
kept = 0


class Pages(Spider):
    name = "pages"

    async def start(self):
        yield Request(start)

    def parse(self, response):
        global kept
        kept += 1
        yield {"url": response.url, "title": response.css("title::text").get(), "html": response.text}
        for link in links.extract_links(response):
            yield Request(link.url)


# Requests in flight: as many as Trunkline allows itself at a host without a delay.
crawler = CrawlerProcess(
    {
        "LOG_ENABLED": False,
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "CLOSESPIDER_ITEMCOUNT": limit,
        "TELNETCONSOLE_ENABLED": False,
        "FEEDS": {output: {"format": "jsonlines"}},
    }
)
began = time.monotonic()
crawler.crawl(Pages)
crawler.start()
took = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(
    json.dumps(
        {
            "pages": kept,
            "ms": took * 1000,
            "cpuMs": (used.ru_utime + used.ru_stime) * 1000,
            "peakBytes": used.ru_maxrss * 1024,
        }
    )
)
