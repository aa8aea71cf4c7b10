import ConfluxVocabulary

/// The server's side of the handshake.
extension CurveSession {
    /// Takes the client's HELLO, which has the client's key for this connection.
    ///
    /// - Parameter body: The command, without its name.
    /// - Returns: The command to answer with.
    /// - Throws: ``ZMTPFault`` if it is meant for another server, is malformed, or was answered before.
    func welcome(_ body: Bytes) throws(ZMTPFault) -> [UInt8] {
        guard case .server(let server) = side, handshake == nil, shared.isEmpty,
            body.count == Self.helloBytes, body.first == 1
        else { throw ZMTPFault("a HELLO that is none") }
        let body = Array(body)
        let clientKey = Array(body[74..<106])
        if seen?.contains(clientKey) == true { throw ZMTPFault("a HELLO that was answered before") }
        let key = try Self.agree(clientKey, server.secret)
        guard
            Self.open(
                body[114...], Array("CurveZMQHELLO---".utf8) + body[106..<114], key)
                == [UInt8](repeating: 0, count: 64)
        else {
            throw ZMTPFault("a HELLO to another server", says: ZMTP.error(ZMTP.otherServerStatus))
        }
        seen?.add(clientKey)
        let handshake = Handshake(peerKey: clientKey, cookie: Sodium.random(Self.cookieBytes))
        self.handshake = handshake
        let tail = Sodium.random(16)
        let box = Self.seal(
            handshake.own.publicKey.bytes + handshake.cookie, Array("WELCOME-".utf8) + tail, key
        )
        return ZMTP.command("WELCOME", tail + box)
    }

    /// Takes the client's INITIATE, which proves who the client is.
    ///
    /// - Parameter body: The command, without its name.
    /// - Returns: The client's key, and what the client states about its socket.
    /// - Throws: ``ZMTPFault`` if it doesn't prove that.
    func initiate(_ body: Bytes) throws(ZMTPFault) -> (key: CurvePublicKey, metadata: Bytes) {
        guard case .server(let server) = side, let handshake,
            body.count >= Self.initiateBytesMin
        else {
            throw ZMTPFault("an INITIATE that is none")
        }
        self.handshake = nil
        let body = Array(body)
        // First, since it costs nothing: only a client that has opened the WELCOME knows the cookie.
        guard body[..<96].elementsEqual(handshake.cookie) else {
            throw ZMTPFault("an INITIATE with another cookie")
        }
        shared = try Self.agree(handshake.peerKey, handshake.own.secret)
        let short = Array(body[96..<104])
        guard
            let content = Self.open(
                body[104...], Array("CurveZMQINITIATE".utf8) + short, shared)
        else { throw ZMTPFault("an INITIATE that does not open") }
        peerNonce = Self.number(short)
        let key = Array(content[..<32])
        let vouch = Self.open(
            content[48..<128], Array("VOUCH---".utf8) + content[32..<48],
            try Self.agree(key, handshake.own.secret))
        guard vouch == handshake.peerKey + server.publicKey.bytes else {
            throw ZMTPFault("a vouch for another key")
        }
        return (CurvePublicKey(bytes: key), content[128...])
    }

    /// Admits the client.
    ///
    /// - Parameter metadata: What the server states about its socket.
    /// - Returns: The command that ends the handshake.
    func ready(_ metadata: [UInt8]) -> [UInt8] {
        let short = nextNonce()
        return ZMTP.command(
            "READY", short + Self.seal(metadata, Array("CurveZMQREADY---".utf8) + short, shared))
    }
}
