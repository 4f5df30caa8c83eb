package supervise

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The times of package limits, which this package does not import to stay small.
// A test compares them.
const (
	linger    = 250 * time.Millisecond
	killAfter = 3 * time.Second
	lost      = 500 * time.Millisecond
	giveUp    = 5 * time.Second
)

const (
	setPdeathsig      = 1  // PR_SET_PDEATHSIG
	setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	closeRange        = 436
	closeRangeCloexec = 4
)

func init() {
	if len(os.Args) > 2 && os.Args[1] == Command && isSocket(ControlFD) {
		os.Exit(Main(os.Args[2:]))
	}
}

// isSocket tells a real supervisor from somebody who types its command.
func isSocket(fd int) bool {
	var st syscall.Stat_t
	return syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFSOCK
}

// stage is how far the end of the command has come.
type stage int

const (
	running   stage = iota
	lingering       // the shell has ended; others have not
	asked           // they have got SIGTERM
	killing
)

type supervisor struct {
	parent int
	shell  int
	ended  bool // the shell
	stage  stage
	timer  *time.Timer // of the stage
	until  time.Time   // when killing is given up
	pause  time.Duration
}

// Main supervises one command: argv is the path of its program and its arguments.
// It returns the exit status of the supervisor, which says nothing of the
// command's.
func Main(argv []string) int {
	runtime.LockOSThread() // the shell is bound to the death of the thread that starts it
	s := &supervisor{parent: os.Getppid(), timer: time.NewTimer(time.Hour)}
	// Whatever dsh was started with is not for the command.
	_, _, _ = syscall.RawSyscall(closeRange, ControlFD, ^uintptr(0), closeRangeCloexec) // Linux 5.11
	syscall.CloseOnExec(ControlFD)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); e != 0 {
		say("error adopt processes: " + e.Error())
		return 1
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setPdeathsig, uintptr(syscall.SIGHUP), 0)

	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		say("error " + err.Error())
		return 1
	}
	s.shell = pid
	say("pid " + strconv.Itoa(pid))
	letGo()
	orders, dead := make(chan byte), make(chan corpse)
	go listen(orders)
	go reap(dead)
	return s.run(orders, dead, signals)
}

// letGo leaves the streams to the command, so that they end with it.
func letGo() {
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil || syscall.Dup3(null, fd, 0) != nil {
			_ = syscall.Close(fd)
		}
	}
}

// say writes a line to dsh. If it cannot be written, dsh is gone, of which the
// supervisor hears otherwise.
func say(line string) {
	_, _ = syscall.Write(ControlFD, []byte(line+"\n"))
}

// listen gives what dsh orders, and closes orders when dsh is gone.
func listen(orders chan<- byte) {
	var b [1]byte
	for {
		n, err := syscall.Read(ControlFD, b[:])
		switch {
		case err == syscall.EINTR:
		case n == 1:
			orders <- b[0]
		default:
			close(orders)
			return
		}
	}
}

// corpse is a process that was waited for.
type corpse struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for every child, born or adopted, and closes dead when there are none.
func reap(dead chan<- corpse) {
	for {
		var c corpse
		var err error
		c.pid, err = syscall.Wait4(-1, &c.status, 0, nil)
		switch err {
		case nil:
			dead <- c
		case syscall.EINTR:
		default: // ECHILD
			close(dead)
			return
		}
	}
}

// run lives until nothing is left of the command.
func (s *supervisor) run(orders <-chan byte, dead <-chan corpse, signals <-chan os.Signal) int {
	for {
		select {
		case c, ok := <-dead:
			if !ok {
				return 0
			}
			s.buried(c)
		case order, ok := <-orders:
			switch {
			case !ok:
				orders = nil
				s.ask(lost)
			case order == Kill:
				s.kill()
			default:
				s.ask(killAfter)
			}
		case sig := <-signals:
			switch {
			case sig != syscall.SIGHUP:
				s.ask(killAfter)
			case os.Getppid() != s.parent: // not only the thread that started us
				s.ask(lost)
			}
		case <-s.timer.C:
			if s.next() {
				return 1
			}
		}
	}
}

// buried tells of the end of the shell, and gives what is left its time.
func (s *supervisor) buried(c corpse) {
	if c.pid != s.shell {
		return
	}
	s.ended = true
	if c.status.Signaled() {
		say("signal " + strconv.Itoa(int(c.status.Signal())))
	} else {
		say("exit " + strconv.Itoa(c.status.ExitStatus()))
	}
	if s.stage == running {
		s.stage = lingering
		s.timer.Reset(linger)
	}
}

// ask sends SIGTERM, once, and has SIGKILL follow after the given time, or sooner
// if it was to follow sooner.
func (s *supervisor) ask(patience time.Duration) {
	switch s.stage {
	case running, lingering:
		s.stage = asked
		s.signalGroups(syscall.SIGTERM)
		s.signalGroups(syscall.SIGCONT) // a stopped process does not end
		s.until = time.Now().Add(patience)
		s.timer.Reset(patience)
	case asked:
		if until := time.Now().Add(patience); until.Before(s.until) {
			s.until = until
			s.timer.Reset(patience)
		}
	}
}

// next is called when the time of the stage is over. It tells whether to give up.
func (s *supervisor) next() bool {
	switch s.stage {
	case lingering:
		s.ask(lost)
	case asked:
		s.kill()
	case killing:
		if time.Now().After(s.until) {
			say("left " + strconv.Itoa(len(s.descendants())))
			return true
		}
		s.strike()
	}
	return false
}

// kill begins to kill.
func (s *supervisor) kill() {
	if s.stage == killing {
		return
	}
	s.stage = killing
	s.until = time.Now().Add(giveUp)
	s.pause = time.Millisecond
	s.strike()
}

// strike kills everything that it sees once. A process that was born meanwhile is
// seen by the next strike.
func (s *supervisor) strike() {
	// Group by group first: the kernel kills all of a group at once, forks included.
	s.signalGroups(syscall.SIGKILL)
	stopped := map[int]bool{}
	for range freezes {
		found := false
		for _, p := range s.descendants() {
			if !stopped[p.pid] {
				found, stopped[p.pid] = true, true
				_ = syscall.Kill(p.pid, syscall.SIGSTOP) // gone meanwhile, or another user's
			}
		}
		if !found {
			break
		}
	}
	s.signalGroups(syscall.SIGKILL)
	s.pause = min(2*s.pause, 100*time.Millisecond)
	s.timer.Reset(s.pause)
}

// freezes bounds how often a strike looks for processes that still fork.
const freezes = 20
