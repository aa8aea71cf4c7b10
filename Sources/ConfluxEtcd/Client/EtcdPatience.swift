import ConfluxLog

/// How long one member may take to answer a small request before another one is asked: several times as long
/// as the last answer took, and longer after each failure.
struct EtcdPatience {
    private static let least = Duration.milliseconds(400)

    private let most: Duration
    private(set) var answerMax: Duration

    /// - Parameter most: The upper limit, however slow etcd is.
    init(upTo most: Duration) {
        self.most = most
        answerMax = min(Self.least, most)
    }

    mutating func took(_ time: Duration) { answerMax = min(max(time * 4, Self.least), most) }

    mutating func failed() { answerMax = min(answerMax * 2, most) }

    /// Makes a small request with this time limit. Later requests have the limits of the settings again.
    mutating func ask<Answer>(
        _ client: any EtcdStore, within settings: EtcdLogSettings,
        _ body: () throws(LogError) -> Answer
    ) throws(LogError) -> Answer {
        client.limit(answer: answerMax, call: settings.callMax)
        defer { client.limit(answer: settings.answerMax, call: settings.callMax) }
        let begun = client.now
        do throws(LogError) {
            let answer = try body()
            took(client.now - begun)
            return answer
        } catch {
            failed()
            throw error
        }
    }
}
