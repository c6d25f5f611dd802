/**
 * For a process that holds tokens for long: Node opens its debugger to all users of this machine when it is
 * sent SIGUSR1, with which people have other daemons open their logs again. Whoever listens to that signal
 * has it to himself.
 */
export const keepDebuggerShut = (): void => void process.on('SIGUSR1', () => undefined)
