package prom

// State is where a run is in its life.
type State string

// The states of a run, in the words of its record.
const (
	Running  State = "running"
	Finished State = "finished"
	Stopped  State = "stopped" // by a halt; what was measured is kept
	Failed   State = "failed"  // without a document
)

var states = []string{string(Running), string(Finished), string(Stopped), string(Failed)}

// Halt is the class of a reason for which a run was halted.
type Halt string

// Classes of halts.
const (
	HaltOperator  Halt = "operator"       // somebody asked for it
	HaltCondition Halt = "stop_condition" // the target is worse than the run may make it
	HaltBudget    Halt = "budget"         // of calls, money or time
	HaltLease     Halt = "lease"          // the controller lost its lease of the run
	HaltInterrupt Halt = "interrupt"      // the controller was told to end
)

var halts = []string{string(HaltOperator), string(HaltCondition), string(HaltBudget), string(HaltLease), string(HaltInterrupt), other}

// commands are those that begin a run.
var commands = []string{"scan", "ci", "load", "chaos", "proxy", "inspect", "audit", "grade", "eval"}

// Fleet counts the agents that a controller knows, each in one state.
type Fleet struct {
	Ready        int // would take work
	Busy         int // have work in hand
	Draining     int // finish what they have and take nothing new
	Incompatible int // of another protocol or fault schedule
	Lost         int // known to the run, and silent since
}

var fleetStates = []string{"ready", "busy", "draining", "incompatible", "lost"}

// counts are in the order of fleetStates.
func (f Fleet) counts() []int { return []int{f.Ready, f.Busy, f.Draining, f.Incompatible, f.Lost} }

// Progress is how far the stage under way is, in operations.
type Progress struct {
	Planned int64
	Done    int64
	Failed  int64 // of those done
}
