package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// run reads a table, processes its rows, writes the result, and returns the exit code.
func run(words []string, errOut io.Writer) int {
	flags := flag.NewFlagSet("project_name", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprintln(errOut, "Usage: project_name INPUT OUTPUT")
		fmt.Fprintln(errOut, "  INPUT   a table: .csv, .json or .jsonl")
		fmt.Fprintln(errOut, "  OUTPUT  the file for the result: .csv, or else JSON")
	}
	if err := flags.Parse(words); err == flag.ErrHelp {
		return 0
	} else if err != nil || flags.NArg() != 2 {
		flags.Usage()
		return 2
	}
	if err := convertFile(flags.Arg(0), flags.Arg(1)); err != nil {
		fmt.Fprintf(errOut, "error: %v\n", err)
		return 1
	}
	return 0
}

func convertFile(input, output string) error {
	rows, err := readRows(input)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s has no rows", input)
	}
	result, err := process(rows)
	if err != nil {
		return err
	}
	return writeResult(result, output)
}

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}
