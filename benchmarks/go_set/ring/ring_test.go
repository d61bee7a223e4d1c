package ring

import (
	"reflect"
	"testing"
)

func TestItems(t *testing.T) {
	r := New(3)
	r.Add(1)
	r.Add(2)
	if got := r.Items(); !reflect.DeepEqual(got, []int{1, 2}) || r.Len() != 2 {
		t.Errorf("got %v", got)
	}
	r.Add(3)
	r.Add(4)
	if got := r.Items(); !reflect.DeepEqual(got, []int{2, 3, 4}) || r.Len() != 3 {
		t.Errorf("got %v", got)
	}
}

func TestMean(t *testing.T) {
	r := New(2)
	if r.Mean() != 0 {
		t.Error("it is empty")
	}
	r.Add(1)
	r.Add(2)
	if got := r.Mean(); got != 1.5 {
		t.Errorf("got %v", got)
	}
}
