// Command helmchart lints and renders a chart with helm's own packages: `helmchart <chart> [values.yaml]`.
// It prints a JSON object: each template's file with its text, and the linter's messages. Invalid values end it with 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const namespace = "trunkline"

type result struct {
	Lint  []string          `json:"lint"`
	Files map[string]string `json:"files"`
}

func main() {
	found, err := render(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func render(arguments []string) (*result, error) {
	if len(arguments) < 1 {
		return nil, fmt.Errorf("cannot render a chart: expected its folder")
	}
	folder := arguments[0]
	given := common.Values{}
	if len(arguments) > 1 {
		read, err := common.ReadValuesFile(arguments[1])
		if err != nil {
			return nil, err
		}
		given = read
	}
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "trunkline", Namespace: namespace, Revision: 1, IsInstall: true}
	// The schema of the values is checked here, as `helm install` does.
	values, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	found := result{Lint: []string{}, Files: files}
	for _, message := range lint.RunAll(folder, given, namespace).Messages {
		found.Lint = append(found.Lint, message.Error())
	}
	return &found, nil
}
