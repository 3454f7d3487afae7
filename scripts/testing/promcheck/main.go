// Program promcheck judges metrics as Prometheus does. `promcheck lint` reads one scrape and prints what
// `promtool check metrics` prints. `promcheck alerts` reads scrapes and rules as JSON, and prints what fires after the
// last scrape. promtool itself takes minutes to build, since it holds the service discovery of every cloud.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type question struct {
	Rules   []rule   `json:"rules"`
	Scrapes []scrape `json:"scrapes"`
}

type rule struct {
	Alert      string  `json:"alert"`
	Expr       string  `json:"expr"`
	ForSeconds float64 `json:"forSeconds"`
}

// A scrape without a text has failed.
type scrape struct {
	AtSeconds int64   `json:"atSeconds"`
	Instance  string  `json:"instance"`
	Text      *string `json:"text"`
}

type firing struct {
	Alert  string            `json:"alert"`
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

func main() {
	var err error
	switch strings.Join(os.Args[1:], " ") {
	case "lint":
		err = lint()
	case "alerts":
		err = alerts()
	default:
		err = fmt.Errorf("expected lint or alerts")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func lint() error {
	problems, err := promlint.New(os.Stdin).Lint()
	for _, problem := range problems {
		fmt.Println(problem.Metric, problem.Text)
	}
	return err
}

func alerts() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	store, times, err := load(asked.Scrapes)
	if err != nil {
		return err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000,
		Timeout:    time.Minute,
	})
	found := []firing{}
	for _, one := range asked.Rules {
		fires, err := evaluate(engine, store, times, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Alert, err)
		}
		found = append(found, fires...)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// evaluate runs the rule at each scrape, and returns the series that are true since `for`.
func evaluate(engine *promql.Engine, store *memory, times []int64, one rule) ([]firing, error) {
	since := map[string]int64{}
	var last []firing
	for _, at := range times {
		query, err := engine.NewInstantQuery(context.Background(), store, nil, one.Expr, time.UnixMilli(at))
		if err != nil {
			return nil, err
		}
		result := query.Exec(context.Background())
		if result.Err != nil {
			return nil, result.Err
		}
		vector, err := result.Vector()
		if err != nil {
			return nil, err
		}
		now := map[string]int64{}
		last = nil
		for _, sample := range vector {
			key := sample.Metric.String()
			began, isActive := since[key]
			if !isActive {
				began = at
			}
			now[key] = began
			if float64(at-began)/1000 >= one.ForSeconds {
				last = append(last, firing{one.Alert, sample.Metric.Map(), sample.F})
			}
		}
		since = now
		query.Close()
	}
	return last, nil
}

func load(scrapes []scrape) (*memory, []int64, error) {
	store := &memory{series: map[string]*series{}}
	seen := map[int64]bool{}
	for _, one := range scrapes {
		at := one.AtSeconds * 1000
		seen[at] = true
		up := 0.0
		if one.Text != nil {
			up = 1
			textParser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := textParser.TextToMetricFamilies(strings.NewReader(*one.Text))
			if err != nil {
				return nil, nil, err
			}
			for name, family := range families {
				for _, metric := range family.GetMetric() {
					store.addMetric(name, one.Instance, at, metric)
				}
			}
		}
		store.add("up", one.Instance, at, nil, nil, up)
	}
	times := make([]int64, 0, len(seen))
	for at := range seen {
		times = append(times, at)
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return store, times, nil
}

func (m *memory) addMetric(name, instance string, at int64, metric *dto.Metric) {
	switch {
	case metric.Counter != nil:
		m.add(name, instance, at, metric.Label, nil, metric.Counter.GetValue())
	case metric.Gauge != nil:
		m.add(name, instance, at, metric.Label, nil, metric.Gauge.GetValue())
	case metric.Untyped != nil:
		m.add(name, instance, at, metric.Label, nil, metric.Untyped.GetValue())
	case metric.Histogram != nil:
		m.add(name+"_sum", instance, at, metric.Label, nil, metric.Histogram.GetSampleSum())
		m.add(name+"_count", instance, at, metric.Label, nil, float64(metric.Histogram.GetSampleCount()))
		for _, bucket := range metric.Histogram.Bucket {
			le := map[string]string{"le": fmt.Sprint(bucket.GetUpperBound())}
			m.add(name+"_bucket", instance, at, metric.Label, le, float64(bucket.GetCumulativeCount()))
		}
	}
}

// sample is one float. The rest of its interface serves histograms.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// memory is a storage of scraped samples.
type memory struct {
	series map[string]*series
}

func (m *memory) add(name, instance string, at int64, pairs []*dto.LabelPair, more map[string]string, value float64) {
	all := map[string]string{"__name__": name, "job": "trunkline", "instance": instance}
	for _, pair := range pairs {
		all[pair.GetName()] = pair.GetValue()
	}
	for label, text := range more {
		all[label] = text
	}
	set := labels.FromMap(all)
	known := m.series[set.String()]
	if known == nil {
		known = &series{labels: set}
		m.series[set.String()] = known
	}
	known.samples = append(known.samples, sample{at, value})
}

func (m *memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{m, mint, maxt}, nil
}

type querier struct {
	memory     *memory
	mint, maxt int64
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.memory.series {
		if !matches(one.labels, matchers) {
			continue
		}
		var within []chunks.Sample
		for _, sample := range one.samples {
			if sample.T() >= q.mint && sample.T() <= q.maxt {
				within = append(within, sample)
			}
		}
		found = append(found, storage.NewListSeries(one.labels, within))
	}
	sort.Slice(found, func(i, j int) bool { return labels.Compare(found[i].Labels(), found[j].Labels()) < 0 })
	return &seriesSet{found, -1}
}

func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) Close() error { return nil }

func matches(set labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(set.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
