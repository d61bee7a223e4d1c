package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// useOwnData has the data of a test saved in a folder of its own.
func useOwnData(t *testing.T) {
	dataPath = filepath.Join(t.TempDir(), "project_name.json")
}

// runCommand runs the program and returns its exit code and what it printed.
func runCommand(t *testing.T, words ...string) (int, string) {
	t.Helper()
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("The command %q crashes: %v", strings.Join(words, " "), fault)
		}
	}()
	var output bytes.Buffer
	code := run(words, &output, &output)
	return code, strings.TrimSpace(output.String())
}

func TestThereIsACommand(t *testing.T) {
	if len(commands) == 0 {
		t.Fatal("commands.go has no command.")
	}
	for _, command := range commands {
		if command.Name == "" || command.Help == "" || command.Run == nil {
			t.Errorf("The command %q needs a Name, a Help and a Run.", command.Name)
		}
	}
}

func TestEachCommandHasAHelpPage(t *testing.T) {
	useOwnData(t)
	for _, command := range commands {
		code, output := runCommand(t, command.Name, "--help")
		if code != 0 || output == "" {
			t.Errorf("%s --help prints %q, with exit code %d.", command.Name, output, code)
		}
	}
}

func TestEachCommandDoesSomething(t *testing.T) {
	useOwnData(t)
	hasSucceeded := len(commands) == 0
	for _, command := range commands {
		words := []string{command.Name}
		for range command.Args {
			words = append(words, "1")
		}
		before, _ := os.ReadFile(dataPath)
		code, output := runCommand(t, words...)
		after, _ := os.ReadFile(dataPath)
		if output == "" && bytes.Equal(before, after) {
			t.Errorf("The command %q prints and saves nothing.", strings.Join(words, " "))
		}
		hasSucceeded = hasSucceeded || code == 0
	}
	if !hasSucceeded {
		t.Error("Each command fails.")
	}
}
