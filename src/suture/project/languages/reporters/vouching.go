package testing

// What follows is put behind the text of package testing. A test program takes a token out of a file before any test
// runs, removes the file, and hands the token over once its tests have run to their end and none failed: code under
// test that prints what tests print, and ends the program, has none.

var sutureReport, sutureToken = sutureStart()
var sutureSaid []string
var sutureLock sync.Mutex

func sutureStart() (string, string) {
	if !sutureAsked() {
		return "", "" // a program that a test or a build starts, in the folder of some other package's tests too
	}
	folder := os.Getenv("SUTURE_VOUCHING")
	root := folder[:strings.LastIndex(folder, "/")+1]
	here, err := os.Getwd()
	if err != nil || root == "" || !strings.HasPrefix(here+"/", root) {
		return "", ""
	}
	path := folder + "/tokens/%" + strings.ReplaceAll((here + "/")[len(root):], "/", "%")
	token, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		return "", "" // a program that a test starts, in the same folder
	}
	return folder + "/report", string(token)
}

// sutureAsked tells whether `go test` started this: it gives each program that word, who starts one by hand seldom does.
func sutureAsked() bool {
	for _, word := range os.Args {
		if word == "-test.paniconexit0" {
			return true
		}
	}
	return false
}

func sutureSaw(name string, status string) {
	sutureLock.Lock()
	defer sutureLock.Unlock()
	sutureSaid = append(sutureSaid, "\t"+status+" "+name)
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
		line = sutureToken + "\t" + m.deps.ImportPath() + strings.Join(sutureSaid, "")
	}
	if file, err := os.OpenFile(sutureReport, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		file.WriteString(line + "\n")
		file.Close()
	}
	return
}
