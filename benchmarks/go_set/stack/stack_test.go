package stack

import "testing"

func TestPop(t *testing.T) {
	var s Stack
	if _, ok := s.Pop(); ok {
		t.Error("it is empty")
	}
	s.Push(4)
	s.Push(9)
	if top, ok := s.Pop(); top != 9 || !ok {
		t.Errorf("got %d", top)
	}
	if top, _ := s.Pop(); top != 4 {
		t.Errorf("got %d", top)
	}
}

func TestEval(t *testing.T) {
	for term, want := range map[string]int{"34+2*": 14, "92-": 7, "7": 7, "90+": 9} {
		if got, ok := Eval(term); got != want || !ok {
			t.Errorf("%s: got %d, %v", term, got, ok)
		}
	}
	for _, term := range []string{"", "3+", "34", "34x"} {
		if _, ok := Eval(term); ok {
			t.Errorf("%s is none", term)
		}
	}
}
