// Crawls a site with colly, once per process, and keeps the same of each page as Trunkline: address, title and HTML.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"
)

// Requests in flight, as many as Trunkline allows itself at a host without a delay.
const parallelism = 8

type page struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	HTML  string `json:"html"`
}

func main() {
	start, file := os.Args[1], os.Args[3]
	limit, err := strconv.ParseInt(os.Args[2], 10, 64)
	check(err)
	output, err := os.Create(file)
	check(err)
	buffered := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(buffered)
	var writing sync.Mutex
	var admitted, kept atomic.Int64

	site, err := url.Parse(start)
	check(err)
	collector := colly.NewCollector(colly.Async(true), colly.AllowedDomains(site.Hostname()))
	collector.IgnoreRobotsTxt = false
	check(collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: parallelism}))
	collector.OnRequest(func(request *colly.Request) {
		if admitted.Add(1) > limit {
			request.Abort()
		}
	})
	collector.OnHTML("a[href]", func(link *colly.HTMLElement) {
		// Visits an address once; a second visit is an error that says so.
		_ = link.Request.Visit(link.Attr("href"))
	})
	collector.OnHTML("html", func(html *colly.HTMLElement) {
		found := page{html.Request.URL.String(), html.ChildText("title"), string(html.Response.Body)}
		writing.Lock()
		defer writing.Unlock()
		check(encoder.Encode(found))
		kept.Add(1)
	})

	began := time.Now()
	check(collector.Visit(start))
	collector.Wait()
	check(buffered.Flush())
	check(output.Sync())
	took := time.Since(began)
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	cpu := used.Utime.Nano() + used.Stime.Nano()
	fmt.Printf("{\"pages\":%d,\"ms\":%f,\"cpuMs\":%f,\"peakBytes\":%d}\n",
		kept.Load(), float64(took)/1e6, float64(cpu)/1e6, used.Maxrss*1024)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
