# Follows a document, and asks for what it missed: perl observe.pl PUBLISH ASK
use v5.24;
use JSON::PP;
use ZMQ::FFI;
use ZMQ::FFI::Constants qw(ZMQ_SUB ZMQ_REQ ZMQ_REQ_RELAXED ZMQ_REQ_CORRELATE ZMQ_RCVTIMEO);
my ($context, $json, $last) = (ZMQ::FFI->new, JSON::PP->new->utf8->canonical, 0);  # $last: of the newest line
my ($sub, $req) = ($context->socket(ZMQ_SUB), $context->socket(ZMQ_REQ));
$req->set($_, int => 1) for ZMQ_REQ_RELAXED, ZMQ_REQ_CORRELATE;  # a request may be sent again
$req->set(ZMQ_RCVTIMEO, int => 3000);
$sub->connect($ARGV[0]);
$req->connect($ARGV[1]);
$sub->subscribe("document/prefs\0");
$| = 1;
sub ask {
    my ($request, $answer) = $json->encode({@_});
    do { $req->send($request) } until eval { $answer = $req->recv };  # again, if none comes in 3 s
    return $json->decode($answer);
}
sub show { my ($head, $kind, $body) = @_; say(($last = $head->{sequence} // 0) . " $kind $body"); $last += 0 }
ask(store => "document/prefs", dispatch => {set => {at => "/perl", value => "hello"}}, key => "$$-$^T");
while (my (undef, $head, $body) = $sub->recv_multipart) {
    $head = $json->decode($head);
    if ($head->{kind} eq "change" && $head->{previous} > $last) {  # something is missing
        my $answer = ask(get => "document/prefs", since => $last);
        show($_->{head}, "change", $json->encode($_->{body})) for @{$answer->{messages} // []};
        show($answer, "state", $json->encode($answer->{state})) if $answer->{state};  # it was too long ago
    }
    show($head, $head->{kind}, $body) if $head->{kind} ne "change" || $head->{sequence} > $last;
}
