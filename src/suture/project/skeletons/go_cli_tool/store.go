package main

import (
	"encoding/json"
	"os"
)

// dataPath is the file in which the data is saved.
var dataPath = findDataPath()

func findDataPath() string {
	if path := os.Getenv("PROJECT_NAME_FILE"); path != "" {
		return path
	}
	return "project_name.json"
}

// load reads the saved data into the variable that target points to. If nothing is saved yet, it stays as it is.
func load(target any) error {
	content, err := os.ReadFile(dataPath)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(content, target)
}

// save replaces the saved data.
func save(data any) error {
	content, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(dataPath+".part", content, 0o644); err != nil {
		return err
	}
	return os.Rename(dataPath+".part", dataPath)
}
