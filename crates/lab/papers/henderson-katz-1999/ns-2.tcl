# A file of 10 MB over 10 Mbit/s, a router and 1.3 Mbit/s in ns-2 (2.35, Debian's package ns2).
#   ns ns-2.tcl TCP SINK ROUND_TRIP_MS LOSS QUEUE SEED IMPATIENT
# prints seconds to the last acknowledgement, kbit/s, timeouts and retransmitted packets.
# TCP: Sack1 or Newreno; SINK: "/Sack1", "/Sack1/DelAck", "" or "/DelAck"; IMPATIENT: 1 if only the first
# partial acknowledgement restarts the timer (ns-2's default), 0 if each does (RFC 6582).
lassign $argv kind sink rtt loss queue seed impatient
set ns [new Simulator]
ns-random $seed
foreach name {a r b} { set $name [$ns node] }
$ns duplex-link $a $r 10Mb 5ms DropTail
$ns duplex-link $r $b 1.3Mb [expr {$rtt / 2.0 - 5}]ms DropTail
$ns queue-limit $a $r $queue
$ns queue-limit $r $b $queue
$ns queue-limit $b $r 10000
$ns queue-limit $r $a 10000
if {$loss > 0} {
    set em [new ErrorModel]
    $em unit pkt
    $em set rate_ $loss
    set rng [new RNG]; $rng seed $seed
    set uniform [new RandomVariable/Uniform]; $uniform use-rng $rng
    $em ranvar $uniform
    $em drop-target [new Agent/Null]
    $ns link-lossmodel $em $r $b
}
set tcp [new Agent/TCP/$kind]
$tcp set packetSize_ 1000
$tcp set window_ 245
$tcp set windowInit_ 1
$tcp set minrto_ 1
$tcp set overhead_ 0
$tcp set newreno_changes1_ $impatient
set to [new Agent/TCPSink$sink]
if {[string match *DelAck $sink]} { $to set interval_ 0.2 }
$ns attach-agent $a $tcp
$ns attach-agent $b $to
$ns connect $tcp $to
set ftp [new Application/FTP]
$ftp attach-agent $tcp
set start [expr {[uniform 0 1]}]
$ns at $start "$ftp send 10000000"
proc watch {} {
    global ns tcp start
    if {[$tcp set ack_] >= 9999} {
        set s [expr {[$ns now] - $start}]
        puts "[format %.2f $s] [format %.1f [expr {80000.0 / $s}]] [$tcp set nrexmit_] [$tcp set nrexmitpack_]"
        exit 0
    }
    $ns at [expr {[$ns now] + 0.05}] watch
}
$ns at 1 watch
$ns at 3000 {puts timeout; exit 1}
$ns run
