package worker

func testWorker([]string) int { return 1 }
