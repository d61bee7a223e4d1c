package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Options are the options of a command, by name.
type Options map[string]string

// Command is one command of the program.
type Command struct {
	Name    string
	Args    []string // the names of the arguments
	Options Options  // the defaults of the options
	Help    string
	Run     func(args []string, options Options) (any, error)
}

// usage returns the line of a help page that shows how the command is used.
func (c Command) usage() string {
	words := []string{"project_name"}
	if len(commands) > 1 {
		words = append(words, c.Name)
	}
	words = append(words, c.Args...)
	for name, value := range c.Options {
		words = append(words, fmt.Sprintf("[--%s=%s]", name, value))
	}
	return fmt.Sprintf("  %s\n      %s\n", strings.Join(words, " "), c.Help)
}

func printUsage(out io.Writer, shown []Command) {
	fmt.Fprintln(out, "Usage:")
	for _, command := range shown {
		fmt.Fprint(out, command.usage())
	}
}

// run runs one command and returns the exit code.
func run(words []string, out, errOut io.Writer) int {
	if len(commands) == 0 || len(words) == 0 || strings.TrimLeft(words[0], "-") == "help" || words[0] == "-h" {
		printUsage(out, commands)
		return 0
	}
	for _, command := range commands {
		if command.Name == words[0] {
			return command.start(words[1:], out, errOut)
		}
	}
	if len(commands) == 1 { // a single command needs no name
		return commands[0].start(words, out, errOut)
	}
	fmt.Fprintf(errOut, "error: there is no command %s\n", words[0])
	printUsage(errOut, commands)
	return 2
}

// start reads the arguments and options of the command, runs it, and returns the exit code.
func (c Command) start(words []string, out, errOut io.Writer) int {
	args, options, err := c.parse(words)
	if errors.Is(err, flag.ErrHelp) {
		printUsage(out, []Command{c})
		return 0
	}
	if err == nil && len(args) < len(c.Args) {
		err = fmt.Errorf("%s is missing", c.Args[len(args)])
	}
	if err != nil {
		fmt.Fprintf(errOut, "error: %v\n", err)
		printUsage(errOut, []Command{c})
		return 2
	}
	result, err := c.Run(args, options)
	if err != nil {
		fmt.Fprintf(errOut, "error: %v\n", err)
		return 1
	}
	printResult(out, result)
	return 0
}

// argumentWord matches a word that is no option, such as a negative number.
var argumentWord = regexp.MustCompile(`^(-?$|[^-]|-\.?\d)`)

// parse returns the arguments and the options, which may stand between them. Each word after -- is an argument.
func (c Command) parse(words []string) ([]string, Options, error) {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	values := map[string]*string{}
	for name, value := range c.Options {
		values[name] = flags.String(name, value, "")
	}
	args := []string{}
	for len(words) > 0 && words[0] != "--" {
		if argumentWord.MatchString(words[0]) {
			args, words = append(args, words[0]), words[1:]
			continue
		}
		count := 1
		if !strings.Contains(words[0], "=") && len(words) > 1 {
			count = 2 // the next word is the value
		}
		if err := flags.Parse(words[:count]); err != nil {
			return nil, nil, err
		}
		words = words[count:]
	}
	if len(words) > 0 {
		args = append(args, words[1:]...)
	}
	options := Options{}
	for name, value := range values {
		options[name] = *value
	}
	return args, options, nil
}

func printResult(out io.Writer, result any) {
	switch value := result.(type) {
	case nil:
	case string:
		fmt.Fprintln(out, value)
	case []string:
		for _, line := range value {
			fmt.Fprintln(out, line)
		}
	default:
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(fmt.Sprint(value))
		}
		fmt.Fprintln(out, string(text))
	}
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
