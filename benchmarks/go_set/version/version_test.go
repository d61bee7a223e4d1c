package version

import "testing"

func TestParse(t *testing.T) {
	if got, ok := Parse("v1.20.3"); !ok || got != [3]int{1, 20, 3} {
		t.Errorf("got %v", got)
	}
	if got, ok := Parse("2.1"); !ok || got != [3]int{2, 1, 0} {
		t.Errorf("got %v", got)
	}
	for _, text := range []string{"1.2.3.4", "a", "1.-2", ""} {
		if _, ok := Parse(text); ok {
			t.Errorf("%q is none", text)
		}
	}
}

func TestCompare(t *testing.T) {
	if Compare([3]int{1, 2, 3}, [3]int{1, 10, 0}) != -1 || Compare([3]int{2}, [3]int{1, 9, 9}) != 1 || Compare([3]int{1}, [3]int{1}) != 0 {
		t.Error("order")
	}
}

func TestCompatible(t *testing.T) {
	if !Compatible([3]int{1, 4, 0}, [3]int{1, 2, 9}) || !Compatible([3]int{1, 2, 0}, [3]int{1, 2, 0}) {
		t.Error("it has all")
	}
	if Compatible([3]int{2, 0, 0}, [3]int{1, 2, 0}) || Compatible([3]int{1, 1, 0}, [3]int{1, 2, 0}) {
		t.Error("it has not")
	}
}
