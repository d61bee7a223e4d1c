package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = "sample_path"

// readSample returns the rows of the sample data, each time new ones.
func readSample(t *testing.T) []Row {
	t.Helper()
	rows, err := readRows(sample)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// processRows returns the result as JSON, and says which error stops the pipeline.
func processRows(t *testing.T, rows []Row) string {
	t.Helper()
	first, _ := json.Marshal(rows[:1])
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("process(%s ...) crashes: %v", first, fault)
		}
	}()
	result, err := process(rows)
	if err != nil {
		t.Fatalf("process(%s ...) returns the error: %v", first, err)
	}
	content, err := json.Marshal(result)
	if err != nil {
		t.Fatalf("The result of process(%s ...) cannot be written as JSON: %v", first, err)
	}
	return string(content)
}

func TestTheSampleHasAResult(t *testing.T) {
	switch result := processRows(t, readSample(t)); {
	case result == "null" || result == "[]" || result == "{}":
		t.Errorf("The result for the sample data is empty: %s", result)
	case strings.HasPrefix(result, `"`):
		t.Error("`process` returns a string. Return a Row, a slice or another map; the caller writes it.")
	}
}

func TestTheResultDependsOnTheData(t *testing.T) {
	changed := readSample(t)
	for _, row := range changed {
		for name, cell := range row {
			switch cell := cell.(type) {
			case float64:
				row[name] = cell*2 + 1
			case string:
				row[name] = cell + " changed"
			}
		}
	}
	result := processRows(t, readSample(t))
	if result == processRows(t, changed) && result == processRows(t, readSample(t)[:1]) {
		t.Error("The result does not depend on the data: other data have the same result.")
	}
}

func TestTheSameDataHaveTheSameResult(t *testing.T) {
	if first, second := processRows(t, readSample(t)), processRows(t, readSample(t)); first != second {
		t.Errorf("The same data have different results: %s and %s", first, second)
	}
}

func TestATableWithoutRowsIsRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.csv")
	if err := os.WriteFile(empty, []byte("name,amount\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	code := run([]string{empty, empty + ".json"}, &errors)
	if code != 1 || !strings.Contains(errors.String(), "has no rows") {
		t.Errorf("A table without rows ends with exit code %d and %q", code, errors.String())
	}
}

func TestEachColumnMayBeEmpty(t *testing.T) {
	for column := range readSample(t)[0] {
		rows := readSample(t)
		for _, row := range rows {
			row[column] = nil
		}
		processRows(t, rows)
	}
}

func TestTheResultIsWritten(t *testing.T) {
	output := filepath.Join(t.TempDir(), "result.json")
	var errors bytes.Buffer
	if code := run([]string{sample, output}, &errors); code != 0 {
		t.Fatalf("The result is not written: %s", errors.String())
	}
	content, err := os.ReadFile(output)
	if err != nil || !json.Valid(content) {
		t.Errorf("The result is no JSON: %s, %v", content, err)
	}
}
