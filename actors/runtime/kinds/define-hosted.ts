/**
 * Defines a kind whose messages run an app's code. It is placed and ordered as every actor is, and has a store of its
 * own.
 */
import type { CallId } from "../../../schemas/call-id.ts";
import type { Contract, DeepReadonly, Input, Messages } from "../../../schemas/contract.ts";

/** One message on its way to an instance. */
export interface HostedMessage<M extends Messages, N extends keyof M & string = keyof M & string> {
  message: N;
  input: DeepReadonly<Input<M[N]>>;
  /**
   * The same in every try of one call or delivery. The instance keeps it with the effect, and answers a repetition from
   * there: the runtime repeats a message whose effect it does not know.
   */
  id: string;
  /** Present in a call whose client numbers its calls. */
  call?: CallId;
  /** Time after which nobody waits (epoch ms). */
  deadlineAt: number;
}

/**
 * One key in memory on the host of its shard. Its answers are durable when it gives them, by a store that fences out an
 * instance which was opened earlier elsewhere.
 */
export interface HostedInstance<M extends Messages> {
  /**
   * Handles a message. Several may be under way, begun in the order of their arrival. Resolves with the reply, which
   * the contract checks, when its effect is durable. Throws ActorError to refuse; any other error is a fault, and
   * mail is tried again.
   */
  receive(message: HostedMessage<M>): Promise<unknown>;
  /** True while it must stay in memory without messages. */
  readonly isBusy: boolean;
  /**
   * False for the id of a message under way that may have had an effect which a repetition would have again. If this
   * host gives the message up, its caller is refused and it is not repeated elsewhere. Where the method is absent,
   * all messages may be repeated.
   */
  mayRepeat?(id: string): boolean;
  /** Finishes its messages, or gives them up when the signal aborts. Then another host takes over. Never rejects. */
  close(signal: AbortSignal): Promise<void>;
}

export interface HostedContext {
  /** True while this host surely owns the key's shard. An answer that no durable record proves is held until then. */
  confirm(): Promise<boolean>;
  /** True while mail with another message waits behind the present delivery. */
  hasOtherMail(): boolean;
  /** The instance has failed, or was fenced out. Waiting calls are sent again, and the next message opens it anew. */
  end(error: Error): void;
  /** Aborts when the host gives the key up without waiting. */
  signal: AbortSignal;
}

export interface HostedDefinition<M extends Messages> {
  contract: Contract<M>;
  /** An instance without messages is closed after this. */
  idleMs: number;
  /** Loads a key. Throws ActorError to refuse the waiting messages; after any other error mail is tried again. */
  open(key: string, context: HostedContext): Promise<HostedInstance<M>>;
  /**
   * Called for mail that the instance refused, or that failed too often: notifies those who wait for its outcome.
   * Returns true where no dead letter is needed.
   */
  refused?(
    key: string,
    mail: Pick<HostedMessage<M>, "message" | "input">,
    error: Error,
  ): Promise<boolean>;
}

/** A definition whose messages only it knows: the form that a host keeps. */
export interface AnyHostedDefinition {
  contract: Contract;
  idleMs: number;
  // biome-ignore lint/suspicious/noExplicitAny: the one place where instances of different kinds meet.
  open(key: string, context: HostedContext): Promise<HostedInstance<any>>;
  refused?(
    key: string,
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    mail: { message: any; input: any },
    error: Error,
  ): Promise<boolean>;
}

export function defineHosted<M extends Messages>(
  definition: HostedDefinition<M>,
): HostedDefinition<M> {
  return definition;
}
