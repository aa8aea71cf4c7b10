import ConfluxLog

/// How to connect to a log on etcd, and its bounds. Each value is bounded; opening the log checks it.
public struct EtcdLogSettings: Sendable, Hashable {
    /// Where the log is. Its owner regularly compacts this etcd's history of all keys, also those of other
    /// programs. A program that needs history must use another etcd.
    public var address: EtcdAddress
    /// How connections are encrypted. Used only if the address begins with `etcds://`.
    public var security = EtcdSecurity()
    /// The user; nil if etcd's authentication is not enabled.
    public var credentials: EtcdCredentials?

    /// The largest size of etcd's file, 1 MiB to 1 TiB: the value of `--quota-backend-bytes` of its members.
    /// The last eighth is a reserve: while it is in use, a sequencer admits no actions until checkpoints and
    /// truncation have made room. Members of etcd 3.6 or later report their quota, and the lower of the two
    /// counts.
    public var quotaBytes = 2 << 30

    /// How long one member may take to answer before another one is asked, 100 ms to 60 s.
    public var answerMax = Duration.seconds(2)

    /// How long a call may take in all, with its retries, `answerMax` to 600 s. After that the outcome is
    /// unknown, or the log has failed.
    public var callMax = Duration.seconds(6)

    /// Ends the calls to etcd, when the program has to end; nil if nobody does.
    public var calls: EtcdCalls?

    /// The replacement of etcd in a simulation; nil to use the etcd at the address.
    package var imitation: EtcdImitation?

    /// Makes settings with the default values.
    ///
    /// - Parameter address: The address of the log.
    public init(address: EtcdAddress) {
        self.address = address
    }

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that is out of bounds.
    public func validate() throws(LogError) {
        guard (1 << 20...1 << 40).contains(quotaBytes) else {
            throw LogError(
                .invalidSetting, "quotaBytes is \(quotaBytes); it must be between 1 MiB and 1 TiB.")
        }
        guard answerMax >= .milliseconds(100), answerMax <= .seconds(60) else {
            throw LogError(
                .invalidSetting, "answerMax is \(answerMax); it must be between 100 ms and 60 s.")
        }
        guard callMax >= answerMax, callMax <= .seconds(600) else {
            throw LogError(
                .invalidSetting, "callMax is \(callMax); it must be between answerMax and 600 s.")
        }
        guard credentials == nil || address.isSecure || address.isLocal else {
            throw LogError(
                .invalidSetting,
                "A password would go to other machines unencrypted. Begin the address with etcds://, "
                    + "or leave the credentials out.")
        }
    }
}
