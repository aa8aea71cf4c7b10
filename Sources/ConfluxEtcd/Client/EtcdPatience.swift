import ConfluxLog

/// How long one member may take to answer something small: several times as long as the last answer took, and longer
/// after each failure. Then another member is asked.
struct EtcdPatience {
    private static let least = Duration.milliseconds(400)

    private let most: Duration
    private(set) var answerMax: Duration

    /// - Parameter most: The longest time, however slow etcd is.
    init(upTo most: Duration) {
        self.most = most
        answerMax = min(Self.least, most)
    }

    mutating func took(_ time: Duration) { answerMax = min(max(time * 4, Self.least), most) }

    mutating func failed() { answerMax = min(answerMax * 2, most) }

    /// Asks for something small within this time. Later requests have the limits of the settings again.
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
