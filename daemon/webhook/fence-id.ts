import { randomBytes } from 'node:crypto'

/** 64 random bits as hex digits: the name of the markers of one prompt, which no sender can guess. */
export const newFenceId = (): string => randomBytes(8).toString('hex')
