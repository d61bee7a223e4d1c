package paths

import "testing"

var streets = Graph{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {"e"}, "x": {"a"}}

func TestDistance(t *testing.T) {
	if got := streets.Distance("a", "e"); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	if got := streets.Distance("a", "a"); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
	if got := streets.Distance("a", "x"); got != -1 {
		t.Errorf("got %d, want -1", got)
	}
}

func TestReachable(t *testing.T) {
	if got := streets.Reachable("b"); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	if got := streets.Reachable("x"); got != 6 {
		t.Errorf("got %d, want 6", got)
	}
}
