package testing

// This text is appended to package testing. Before any test runs, a test program reads a token from a file and removes
// the file. It reports the token only after its tests have completed and none has failed. Code under test that prints
// the output of passing tests and exits does not have the token.

var sutureReport, sutureToken = sutureStart()
var sutureOutcomes []string
var sutureLock sync.Mutex

func sutureStart() (string, string) {
	if !sutureIsGoTest() {
		return "", "" // started by a test or a build, possibly in the folder of another package's tests
	}
	folder := os.Getenv("SUTURE_ATTESTATION")
	root := folder[:strings.LastIndex(folder, "/")+1]
	here, err := os.Getwd()
	if err != nil || root == "" || !strings.HasPrefix(here+"/", root) {
		return "", ""
	}
	path := folder + "/tokens/%" + strings.ReplaceAll((here + "/")[len(root):], "/", "%")
	token, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		return "", "" // started by a test, in the same folder
	}
	return folder + "/report", string(token)
}

// sutureIsGoTest returns whether `go test` started this program. Only `go test` passes this argument.
func sutureIsGoTest() bool {
	for _, word := range os.Args {
		if word == "-test.paniconexit0" {
			return true
		}
	}
	return false
}

func sutureRecord(name string, status string) {
	sutureLock.Lock()
	defer sutureLock.Unlock()
	sutureOutcomes = append(sutureOutcomes, "\t"+status+" "+name)
}

func sutureStatus(failed, skipped bool) string {
	if failed {
		return "failed"
	}
	if skipped {
		return "skipped"
	}
	return "passed"
}

func (m *M) Run() (code int) {
	code = m.sutureRun()
	if sutureToken == "" {
		return
	}
	sutureLock.Lock()
	defer sutureLock.Unlock()
	line := "-\t" + m.deps.ImportPath()
	if code == 0 {
		line = sutureToken + "\t" + m.deps.ImportPath() + strings.Join(sutureOutcomes, "")
	}
	if file, err := os.OpenFile(sutureReport, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		file.WriteString(line + "\n")
		file.Close()
	}
	return
}
