package roman

import "testing"

func TestHidden(t *testing.T) {
	for number := 1; number < 4000; number++ {
		if got, err := Parse(Format(number)); got != number || err != nil {
			t.Fatalf("%d: %s", number, Format(number))
		}
	}
	for _, text := range []string{"IC", "XXXX", "VV", "iv", "MCMC", "IXX"} {
		if _, err := Parse(text); err == nil {
			t.Fatal(text)
		}
	}
	if Format(3888) != "MMMDCCCLXXXVIII" {
		t.Fatal(Format(3888))
	}
}
