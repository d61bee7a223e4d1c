package stack

import "testing"

func TestHidden(t *testing.T) {
	for a := 0; a < 10; a++ {
		for b := 0; b < 10; b++ {
			one, two := string(rune('0'+a)), string(rune('0'+b))
			for sign, want := range map[string]int{"+": a + b, "-": a - b, "*": a * b} {
				if got, ok := Eval(one + two + sign); !ok || got != want {
					t.Fatalf("%d %s %d: %d", a, sign, b, got)
				}
			}
			if _, ok := Eval(one + two); ok {
				t.Fatal("two are left")
			}
			if got, ok := Eval(one + two + "-" + one + "*"); !ok || got != (a-b)*a {
				t.Fatal("nested")
			}
		}
	}
	if _, ok := Eval("+"); ok {
		t.Fatal("nothing there")
	}
	if _, ok := Eval("12/"); ok {
		t.Fatal("unknown")
	}
}
