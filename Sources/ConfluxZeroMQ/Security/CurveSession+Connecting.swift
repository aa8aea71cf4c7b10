import ConfluxVocabulary

/// The client's side of the handshake.
extension CurveSession {
    private static let welcomeBytes = 160
    private static let readyBytesMin = nonceBytes + macBytes

    /// Begins the handshake: the client sends its key for this connection.
    ///
    /// - Returns: The command that begins the handshake.
    /// - Throws: ``ZMTPFault`` if the server's key is not a valid key.
    func hello() throws(ZMTPFault) -> [UInt8] {
        guard case .client(_, let server) = side else { throw ZMTPFault("no client's side") }
        let handshake = Handshake()
        self.handshake = handshake
        let short = nextNonce()
        let key = try Self.agree(server.bytes, handshake.own.secret)
        return ZMTP.command(
            "HELLO",
            [1, 0] + [UInt8](repeating: 0, count: 72) + handshake.own.publicKey.bytes + short
                + Self.seal(
                    [UInt8](repeating: 0, count: 64), Array("CurveZMQHELLO---".utf8) + short, key))
    }

    /// Takes the server's WELCOME, which proves who the server is, and proves who the client is.
    ///
    /// - Parameters:
    ///   - body: The server's command, without its name.
    ///   - metadata: What the client states about its socket.
    /// - Returns: The command to answer with.
    /// - Throws: ``ZMTPFault`` if the server does not prove who it is.
    func initiate(_ body: Bytes, metadata: [UInt8]) throws(ZMTPFault) -> [UInt8] {
        guard case .client(let client, let server) = side, let handshake, shared.isEmpty,
            body.count == Self.welcomeBytes,
            let content = Self.open(
                body.dropFirst(16), Array("WELCOME-".utf8) + body.prefix(16),
                try Self.agree(server.bytes, handshake.own.secret))
        else { throw ZMTPFault("a WELCOME that does not open") }
        self.handshake = nil
        let peerKey = Array(content[..<32])
        shared = try Self.agree(peerKey, handshake.own.secret)
        let tail = Sodium.random(16)
        let vouch = Self.seal(
            handshake.own.publicKey.bytes + server.bytes, Array("VOUCH---".utf8) + tail,
            try Self.agree(peerKey, client.secret))
        let short = nextNonce()
        let box = Self.seal(
            client.publicKey.bytes + tail + vouch + metadata,
            Array("CurveZMQINITIATE".utf8) + short, shared)
        let command = Array("\u{8}INITIATE".utf8) + content[32...] + short + box
        return ZMTP.header(bodyBytes: command.count, isCommand: true) + command
    }

    /// Takes the server's READY, with which it admits the client.
    ///
    /// - Parameter body: The command, without its name.
    /// - Returns: What the server states about its socket.
    /// - Throws: ``ZMTPFault`` if the server did not seal it.
    func takeReady(_ body: Bytes) throws(ZMTPFault) -> Bytes {
        let short = Array(body.prefix(Self.nonceBytes))
        guard !shared.isEmpty, body.count >= Self.readyBytesMin,
            let metadata = Self.open(
                body.dropFirst(Self.nonceBytes), Array("CurveZMQREADY---".utf8) + short, shared)
        else { throw ZMTPFault("a READY that does not open") }
        peerNonce = Self.number(short)
        return metadata[...]
    }
}
