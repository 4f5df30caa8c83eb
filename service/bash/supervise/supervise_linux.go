package supervise

import (
	"os"
	ossignal "os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// The times are those of package limits (a test compares them), which is not
// imported because of the init.
const (
	linger    = 250 * time.Millisecond
	killAfter = 3 * time.Second
	lost      = 500 * time.Millisecond
	giveUp    = 5 * time.Second
	giveUpAll = 60 * time.Second
)

// memory bounds what a supervisor allocates before it collects garbage.
const memory = 64 << 20

const (
	setPdeathsig      = 1  // PR_SET_PDEATHSIG
	setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	closeRange        = 436
	closeRangeCloexec = 4
)

func init() {
	if len(os.Args) > 2 && os.Args[1] == Command && isSocket(ControlFD) {
		syscall.Exit(Main(os.Args[2:])) // at once: the race detector would wait a second
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
	until  time.Time   // when patience ends; when killing is given up if none has died
	last   time.Time   // when killing is given up at last
	many   int         // descendants when they got SIGTERM
	pause  time.Duration
}

// Main supervises one command: argv is the path of its program and its arguments.
// It returns the exit status of the supervisor, which says nothing of the
// command's.
func Main(argv []string) int {
	runtime.LockOSThread() // the shell is bound to the death of the thread that starts it
	debug.SetGCPercent(-1) // next to nothing is allocated,
	debug.SetMemoryLimit(memory)
	s := &supervisor{parent: os.Getppid(), timer: time.NewTimer(0)}
	<-s.timer.C // no stage has a time yet
	// Whatever dsh was started with is not for the command.
	_, _, _ = syscall.RawSyscall(closeRange, ControlFD, ^uintptr(0), closeRangeCloexec) // Linux 5.11
	syscall.CloseOnExec(ControlFD)
	signals := make(chan os.Signal, 8)
	ossignal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); e != 0 {
		say("error adopt processes: " + e.Error())
		return 1
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setPdeathsig, uintptr(syscall.SIGHUP), 0)

	say("starting") // from here on the command may do anything, to us too
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		say("error " + err.Error())
		return 1
	}
	s.shell = pid
	say("begun")
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
			case order == Stop:
				s.ask(killAfter)
			case order == Hurry:
				s.ask(lost)
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
	if s.stage == killing { // it helps
		s.until = time.Now().Add(giveUp)
	}
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
	until := time.Now().Add(patience)
	switch s.stage {
	case running, lingering:
		s.stage, s.until = asked, until
		s.many = s.signalGroups(syscall.SIGTERM, syscall.SIGCONT) // a stopped process does not end
		s.timer.Reset(min(patience, glance))
	case asked:
		if until.Before(s.until) {
			s.until = until
			s.timer.Reset(min(patience, glance))
		}
	}
}

// next is called when the time of the stage is over. It tells whether to give up.
func (s *supervisor) next() bool {
	now := time.Now()
	switch {
	case s.stage == lingering:
		s.ask(lost)
	case s.stage == asked && now.Before(s.until) && len(descendants()) <= 2*s.many+spare:
		s.timer.Reset(min(s.until.Sub(now), glance))
	case s.stage == asked: // in vain, or they multiply
		s.kill()
	case s.stage == killing:
		if now.After(s.until) || now.After(s.last) {
			say("left " + strconv.Itoa(len(descendants())))
			return true
		}
		s.strike()
	}
	return false
}

// Those that multiply after SIGTERM are not given the rest of their time: glance
// is how often they are counted, and spare how many more than twice as many may be.
const (
	glance = 200 * time.Millisecond
	spare  = 32
)

// kill begins to kill.
func (s *supervisor) kill() {
	s.stage = killing
	// For this thread. It helps against a thousand others, where it is allowed.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETPRIORITY, 0, 0, ^uintptr(19)) // -20
	s.last = time.Now().Add(giveUpAll)
	s.until = time.Now().Add(giveUp)
	s.pause = time.Millisecond
	s.strike()
}

// strike kills everything that it sees once. A process that was born meanwhile is
// seen by the next strike.
func (s *supervisor) strike() {
	s.killAll()
	s.pause = min(2*s.pause, 100*time.Millisecond)
	s.timer.Reset(s.pause)
}
