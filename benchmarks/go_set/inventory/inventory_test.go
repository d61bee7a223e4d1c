package inventory

import "testing"

func TestAdd(t *testing.T) {
	s := New()
	if s.Add("nut", 0) == nil {
		t.Error("nothing added")
	}
	if s.Add("nut", 3) != nil || s.Add("nut", 2) != nil {
		t.Error("added")
	}
	if s.Take("nut", 5) != nil {
		t.Error("there are five")
	}
}

func TestTake(t *testing.T) {
	s := New()
	s.Add("nut", 3)
	if s.Take("nut", 4) == nil || s.Take("bolt", 1) == nil {
		t.Error("not so many")
	}
	if s.Take("nut", 2) != nil || s.Kinds() != 1 {
		t.Error("one is left")
	}
	if s.Take("nut", 1) != nil || s.Kinds() != 0 {
		t.Error("none is left")
	}
}

func TestLow(t *testing.T) {
	s := New()
	s.Add("nut", 3)
	s.Add("bolt", 10)
	if s.Low(4) != 1 || s.Low(3) != 0 || s.Low(11) != 2 {
		t.Error("low")
	}
}
