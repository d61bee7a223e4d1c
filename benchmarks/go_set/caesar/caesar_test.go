package caesar

import "testing"

func TestShift(t *testing.T) {
	if got := Shift("abc XYZ!", 3); got != "def ABC!" {
		t.Errorf("got %q", got)
	}
	if got := Shift("def", -4); got != "zab" {
		t.Errorf("got %q", got)
	}
	if got := Shift("z", 1); got != "a" {
		t.Errorf("got %q", got)
	}
}

func TestReverse(t *testing.T) {
	if got := Reverse("h\u00e9llo"); got != "oll\u00e9h" {
		t.Errorf("got %q", got)
	}
}

func TestPalindrome(t *testing.T) {
	if !Palindrome("A man, a plan, a canal: Panama") || !Palindrome("1-2-1") {
		t.Error("it is one")
	}
	if Palindrome("almost") || Palindrome("12") {
		t.Error("it is none")
	}
}
