package money

import (
	"fmt"
	"testing"
)

func TestHidden(t *testing.T) {
	for cents := 0; cents < 400; cents += 7 {
		for people := 1; people < 9; people++ {
			shares, err := Split(cents, people)
			sum := 0
			for i, share := range shares {
				sum += share
				if i > 0 && (shares[i-1] < share || shares[0]-share > 1) {
					t.Fatalf("%d by %d: %v", cents, people, shares)
				}
			}
			if err != nil || sum != cents || len(shares) != people {
				t.Fatalf("%d by %d: %v", cents, people, shares)
			}
		}
		if want := fmt.Sprintf("%.2f", float64(cents)/100); Format(cents) != want || (cents > 0 && Format(-cents) != "-"+want) {
			t.Fatalf("%d: %s", cents, Format(cents))
		}
	}
	if Discount(1, 50) != 1 || Discount(333, 33) != 223 || Discount(80, 100) != 0 || Discount(80, 0) != 80 {
		t.Fatal("discount")
	}
	if _, err := Split(5, -1); err == nil {
		t.Fatal("nobody")
	}
}
