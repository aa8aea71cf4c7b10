import CCurl

/// Ends the calls to etcd of one program, if that has to end and can't wait for them.
///
/// A call that is ended has the outcome of one that etcd never answered: it may have taken effect. So end the calls
/// only when nobody needs their outcomes any more.
public final class EtcdCalls: @unchecked Sendable, Hashable {  // the flag is atomic
    /// Not zero once the calls are over.
    let flag = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

    /// Makes calls that may go on.
    public init() { flag.initialize(to: 0) }

    deinit { flag.deallocate() }

    /// Ends the calls under way, and all later ones, within about half a second. Any thread may call it.
    public func end() { conflux_curl_set_over(flag) }

    /// Whether they were ended.
    var areOver: Bool { conflux_curl_is_over(flag) != 0 }

    /// Whether both are the same object.
    public static func == (first: EtcdCalls, second: EtcdCalls) -> Bool { first === second }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
