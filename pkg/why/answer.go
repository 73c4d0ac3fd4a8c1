package why

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// APIVersion and the kinds name the shape of answers. Fields may be added to it; what
// is there keeps its meaning.
const (
	APIVersion  = "debug.kube-kcm.github.io/v1"
	AnswerKind  = "Why"
	ProblemKind = "WhyProblem"
)

// Verdict is how far something is.
type Verdict string

// The verdicts. Of several the first in this order counts, but for the two last: an
// object without anything to do is complete although nothing is known of an owned one.
const (
	// Blocked: it does not go on, and nobody is known to be about to change that.
	Blocked Verdict = "blocked"
	// Paused: somebody asked for it to stand still.
	Paused Verdict = "paused"
	// Waiting: until a time, or for somebody else.
	Waiting Verdict = "waiting"
	// Progressing: a controller is at work, or the last write is on its way.
	Progressing Verdict = "progressing"
	// Unknown: the caches or the controllers know too little to say.
	Unknown Verdict = "unknown"
	// Complete: it is as it should be.
	Complete Verdict = "complete"
)

// Answer is what is known of one object and of what belongs to it. All times are
// RFC 3339 in UTC; durations are in words, and only in sentences.
type Answer struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	At         time.Time `json:"at"`
	Asked      Asked     `json:"asked"`
	// Verdict is of the object and all below it; owners above it do not count.
	Verdict Verdict `json:"verdict"`
	// Sentence answers in one sentence, about the part that holds up the rest.
	Sentence string  `json:"sentence"`
	Process  Process `json:"process"`
	// Objects are the owners, the object, and what belongs to it, in this order. What
	// is below an object follows it, the worst first.
	Objects []Object `json:"objects"`
	// LeftOut is what is below an object beyond what is shown.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// Nearest are objects of the kind that a cache holds, those with the most similar names
	// first, when it does not hold the one that was asked for.
	Nearest []Asked `json:"nearest,omitempty"`
}

// Asked is the object that the question named, its kind as the API server names it.
type Asked struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Process is who answers.
type Process struct {
	// Identity is what this process holds a lease as; empty without leader election.
	Identity string `json:"identity,omitempty"`
	// Since is when it began to look: its caches were started then. Zero on a standby.
	Since   time.Time `json:"since,omitzero"`
	Leading bool      `json:"leading"`
	// Shadow: it writes nothing, and somebody else leads. What is said of its controllers is
	// what they would do.
	Shadow bool `json:"shadow,omitempty"`
	// Leader is the identity of the holder of the lease.
	Leader string `json:"leader,omitempty"`
	// LeaderAt is the host of that process, as its identity has it, and LeaderAddress the
	// address of the node with that name, where there is one.
	LeaderAt      string `json:"leaderAt,omitempty"`
	LeaderAddress string `json:"leaderAddress,omitempty"`
	// LeaseError is why the last request of this process for the lease failed.
	LeaseError string `json:"leaseError,omitempty"`
}

// Owner names an object of the same answer.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Object is one object of the chain.
type Object struct {
	Kind      string    `json:"kind"`
	Group     string    `json:"group,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Owner is the object above it in this answer; nil for the first.
	Owner *Owner `json:"owner,omitempty"`
	// Depth is 0 for what was asked for, negative for its owners and positive below.
	Depth int `json:"depth"`
	// Known reports whether a cache holds it.
	Known    bool    `json:"known"`
	Verdict  Verdict `json:"verdict"`
	Sentence string  `json:"sentence"`
	// Until is when a wait is over; zero when no time is known.
	Until time.Time `json:"until,omitzero"`
	// Facts are numbers of the object itself, such as "3 of 5 replicas ready".
	Facts       []string     `json:"facts,omitempty"`
	Controllers []Controller `json:"controllers,omitempty"`
}

// Controller is what one controller makes of an object.
type Controller struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Why is the reason of its last decision, or why it has none.
	Why string `json:"why"`
	// Failures is how many tries in a row have failed, the last with LastError, which
	// has the API server's own words. GaveUp: only a change of the object brings another.
	Failures  int    `json:"failures,omitempty"`
	LastError string `json:"lastError,omitempty"`
	GaveUp    bool   `json:"gaveUp,omitempty"`
	// LastLook is when its last reconcile ended, NextTry when it tries again after a
	// failure, NextLook when it looks again without one. Zero when there is none.
	LastLook time.Time `json:"lastLook,omitzero"`
	NextTry  time.Time `json:"nextTry,omitzero"`
	NextLook time.Time `json:"nextLook,omitzero"`
	// Braked is why some deletions wait for their turn, which is at NextTry.
	Braked string `json:"braked,omitempty"`
	// WaitingFor is what it wrote and its caches do not show yet.
	WaitingFor []string       `json:"waitingFor,omitempty"`
	Decisions  []act.Decision `json:"decisions,omitempty"`
	// Page is the path of its debug page for this key.
	Page string `json:"page,omitempty"`

	away bool // it does not run here
}

// LeftOut counts objects of a kind below an owner that are not among the objects.
type LeftOut struct {
	Owner Owner  `json:"owner"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Verdict is the worst of theirs.
	Verdict Verdict `json:"verdict"`
}

// Problem is the answer to a question that cannot be answered.
type Problem struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Code is the HTTP status.
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Kinds are those that can be asked for, when the kind was the problem.
	Kinds []string `json:"kinds,omitempty"`
	// Process is who answers. A standby, which knows no objects, names the leader in it.
	Process Process `json:"process"`
}
