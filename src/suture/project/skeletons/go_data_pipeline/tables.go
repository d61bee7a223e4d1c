package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Row is a row of a table. A number is a float64, another cell is a string, and an empty cell is nil.
type Row = map[string]any

// number matches a number as programs write it. Others, such as 01234 or +49170, are codes that stay text.
var number = regexp.MustCompile(`^-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)

// readRows returns the rows of a table.
func readRows(path string) ([]Row, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	rows := []Row{}
	switch filepath.Ext(path) {
	case ".json":
		if err := json.Unmarshal(content, &rows); err != nil {
			return nil, fmt.Errorf("%s does not hold a list of objects: %w", path, err)
		}
		return rows, nil
	case ".jsonl":
		decoder := json.NewDecoder(bytes.NewReader(content))
		for decoder.More() {
			var row Row
			if err := decoder.Decode(&row); err != nil {
				return nil, fmt.Errorf("%s does not hold an object in each line: %w", path, err)
			}
			rows = append(rows, row)
		}
		return rows, nil
	}
	return readCSV(string(content))
}

func readCSV(text string) ([]Row, error) {
	header, _, _ := strings.Cut(text, "\n")
	reader := csv.NewReader(strings.NewReader(text))
	for _, delimiter := range ";\t|" {
		if strings.Count(header, string(delimiter)) > strings.Count(header, string(reader.Comma)) {
			reader.Comma = delimiter
		}
	}
	reader.FieldsPerRecord = -1 // a row may be shorter or longer than the header
	records, err := reader.ReadAll()
	if err != nil || len(records) == 0 {
		return nil, err
	}
	rows := []Row{}
	for _, record := range records[1:] {
		row := Row{}
		for at, name := range records[0] {
			row[name] = nil
			if at < len(record) {
				row[name] = convert(record[at])
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func convert(cell string) any {
	text := strings.TrimSpace(cell)
	if text == "" {
		return nil
	}
	if value, err := strconv.ParseFloat(text, 64); err == nil && number.MatchString(text) {
		return value
	}
	return text
}

// writeResult writes a result as CSV if the path ends in .csv, else as JSON.
func writeResult(result any, path string) error {
	content, err := json.MarshalIndent(result, "", "  ")
	if err == nil && filepath.Ext(path) == ".csv" {
		content, err = makeCSV(content)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(bytes.TrimRight(content, "\n"), '\n'), 0o644)
}

// makeCSV turns JSON, an object or a list of objects, into CSV. The columns are in the order of the alphabet.
func makeCSV(content []byte) ([]byte, error) {
	var rows []Row
	if err := json.Unmarshal(content, &rows); err != nil {
		rows = make([]Row, 1)
		if err := json.Unmarshal(content, &rows[0]); err != nil {
			return nil, fmt.Errorf("the result is not a table: %w", err)
		}
	}
	columns := Row{}
	for at, row := range rows {
		rows[at] = Row{}
		flatten(row, "", rows[at])
		for name := range rows[at] {
			columns[name] = nil
		}
	}
	names := []string{}
	for name := range columns {
		names = append(names, name)
	}
	sort.Strings(names)
	records := [][]string{names}
	for _, row := range rows {
		record := []string{}
		for _, name := range names {
			record = append(record, formatCell(row[name]))
		}
		records = append(records, record)
	}
	var output bytes.Buffer
	err := csv.NewWriter(&output).WriteAll(records)
	return output.Bytes(), err
}

// flatten writes nested objects into one row with names such as amount.mean.
func flatten(values Row, prefix string, row Row) {
	for name, value := range values {
		if inner, ok := value.(Row); ok {
			flatten(inner, prefix+name+".", row)
		} else {
			row[prefix+name] = value
		}
	}
}

func formatCell(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
