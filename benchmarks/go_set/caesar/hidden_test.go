package caesar

import "testing"

func TestHidden(t *testing.T) {
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for by := -60; by < 60; by++ {
		if Shift(Shift(letters, by), -by) != letters || Shift(letters, by+26) != Shift(letters, by) {
			t.Fatal(by)
		}
	}
	if Shift("a", 25) != "z" || Shift("Z", 1) != "A" || Shift("[`{@", 5) != "[`{@" {
		t.Fatal("ends")
	}
	if Reverse("abcd") != "dcba" || Reverse("") != "" || Palindrome("zaz") != true || Palindrome("09 90") != true || Palindrome("za") {
		t.Fatal("turned")
	}
}
