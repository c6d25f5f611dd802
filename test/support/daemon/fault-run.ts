import { randomFrom } from '../fuzz/random.ts'

/** True in the long form: `npm run test:faults -- --long` sets the variable. */
export const isLong = process.env['DOORWARD_FAULTS'] === 'long'

/** The seed of this run's random moments: in the title of each test that uses it, to run it again with. */
export const faultSeed = Number(process.env['DOORWARD_FAULTS_SEED'] ?? Date.now() % 1_000_000)

/** Random numbers of one test: whole ones below a limit, and picks. */
export const randomMoments = () => {
  const random = randomFrom(faultSeed)
  return {
    chance: (part: number): boolean => random() < part,
    below: (limit: number): number => Math.floor(random() * limit),
    wait: (limitMs: number): Promise<void> =>
      new Promise((resolve) => setTimeout(resolve, random() * limitMs)),
  }
}
