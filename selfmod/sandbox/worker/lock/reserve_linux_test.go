package lock

import "testing"

// The reserve is there when it is wanted, is given up at once, and comes back.
func TestReserve(t *testing.T) {
	if Keep(); reserve.space != nil {
		t.Error("a reserve without a limit")
	}
	reserve.want = true
	defer func() { reserve.want = false }()
	for range 2 {
		Keep()
		Keep()
		if len(reserve.space) != reserveSize {
			t.Fatalf("the reserve has %d bytes", len(reserve.space))
		}
		GiveUp()
		GiveUp()
		if reserve.space != nil {
			t.Fatal("the reserve is still there")
		}
	}
}
