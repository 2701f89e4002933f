internal import TowpathReactor
internal import TowpathWire

/// The path of a connection that is being opened: whether there is one, and waiting for it.
final class ConnectionPath {
    private let plan: ConnectionPlan
    private let loop: EventLoop
    private let deadline: UInt64
    private var handle: Handle?

    init(_ plan: ConnectionPlan, on loop: EventLoop, until deadline: UInt64) {
        self.plan = plan
        self.loop = loop
        self.deadline = deadline
    }

    /// A view that ends with the one who opened it, also where nobody waited for it.
    private final class Handle: Sendable {
        let view: PathView

        init(_ view: PathView) { self.view = view }

        deinit { view.close() }
    }

    /// The plan with the interface that its requirements choose; throws if there is none.
    func chosen() async throws(NetworkError) -> ConnectionPlan {
        guard plan.parameters.choosesInterface, !plan.isUnix else { return plan }
        let path = try await open().path
        guard path.status == .satisfied, let interface = path.interfaces.first else {
            throw lack(of: path)
        }
        return plan.bound(to: interface.name)
    }

    /// What is missing, if an opening failed for want of a path; nil if there is one.
    func lack(after error: NetworkError) async -> NetworkError? {
        guard mayLack(after: error) else { return nil }
        guard let path = try? await open().path else { return nil }
        let isEnough =
            path.status == .satisfied
            && (path.supportsDNS || error.code != .resolverUnavailable)
        return isEnough ? nil : lack(of: path, error)
    }

    /// Whether an opening may have failed for want of a path.
    func mayLack(after error: NetworkError) -> Bool {
        guard plan.parameters.waitsForConnectivity, !plan.isUnix else { return false }
        return error.code == .unreachable || error.code == .resolverUnavailable
            || error.isMissingInterface
    }

    private func lack(of path: Path, _ error: NetworkError? = nil) -> NetworkError {
        let obstacle = path.obstacle.map { "\($0)" } ?? "no name server can be reached"
        return NetworkError(
            .unreachable, error?.stage ?? .connect, "no path: \(obstacle)", cause: error?.cause)
    }

    /// Waits for a path; false at the deadline or when the task is cancelled.
    func wait(forNames needsNames: Bool) async -> Bool {
        guard let handle = try? await open().handle else { return false }
        let waiter = Waiter()
        let end = handle.view.observe { path in
            if path.status == .satisfied, path.supportsDNS || !needsNames { waiter.finish(.ready) }
        }
        defer { end() }
        return await waiter.wait(on: loop, until: deadline) == .ready
    }

    /// On the pool: the kernel may let it wait, and then the caller need not.
    private func open() async throws(NetworkError) -> (handle: Handle, path: Path) {
        let (handle, question) = (handle, question)
        let call = PoolCall(on: .network, mayBeAbandoned: true) {
            Result { () throws(NetworkError) in
                if let handle {
                    handle.view.evaluate()
                    return (handle, handle.view.path)
                }
                let new = Handle(try PathView.open(question, NetworkObserver.Options()))
                return (new, new.view.path)
            }
        }
        let opened: (handle: Handle, path: Path)
        do {
            opened = try await call.run(on: loop, until: deadline, .connect).get()
        } catch {
            throw error as? NetworkError ?? .closed(.connect)
        }
        self.handle = opened.handle
        return opened
    }

    private var question: PathView.Question {
        var question = PathView.Question(requirement: plan.parameters.pathRequirement)
        // For a name the way to everywhere stands: it cannot be looked up without one.
        if case .success(let endpoint) = plan.endpoint, endpoint.isAddress {
            question.endpoint = endpoint
        }
        return question
    }
}

extension Endpoint {
    fileprivate var isAddress: Bool {
        switch host {
        case .ipv4, .ipv6: true
        case .name, nil: false
        }
    }
}

extension NetworkError {
    /// SO_BINDTODEVICE found no interface of that name: it may come.
    fileprivate var isMissingInterface: Bool {
        guard code == .optionFailed, case .system(let errno, _)? = cause else { return false }
        return SystemError(errno, "").kind == .unreachable
    }
}
