/**
 * Defines a kind whose messages run an app's code. Hosts place its keys and order their messages as for actors, but
 * the kind stores its data itself.
 */
import type { CallId } from "../../../schemas/call-id.ts";
import type { Contract, DeepReadonly, Input, Messages } from "../../../schemas/contract.ts";

/** One message on its way to an instance. */
export interface HostedMessage<M extends Messages, N extends keyof M & string = keyof M & string> {
  message: N;
  input: DeepReadonly<Input<M[N]>>;
  /**
   * Equal in every try of one call or delivery. The runtime repeats a message if it does not know whether the message
   * had its effect. So the instance stores the id with the effect, and answers a repetition from this record.
   */
  id: string;
  /** Present in a call whose client numbers its calls. */
  call?: CallId;
  /** Time after which nobody waits for the answer (epoch ms). */
  deadlineAt: number;
}

/**
 * One key in memory on the host of its shard. When the instance answers, the effect is durable in a store. This store
 * refuses the writes of an instance that was opened earlier on another host.
 */
export interface HostedInstance<M extends Messages> {
  /**
   * Handles a message. Several messages may be in progress; they start in the order of their arrival. Resolves with
   * the reply when its effect is durable; the contract checks the reply. Throws ActorError to refuse the message. Any
   * other error is a fault, after which mail is retried.
   */
  receive(message: HostedMessage<M>): Promise<unknown>;
  /** True while the instance must stay in memory although it has no messages. */
  readonly isBusy: boolean;
  /** How long the instance stays open without messages, if not as long as its definition says. */
  readonly idleMs?: number | undefined;
  /**
   * False for the id of a message in progress that may have had an effect, if a repetition would have the effect
   * again. If this host gives the message up, the caller is refused and the message is not repeated on another host.
   * Without this method, all messages may be repeated.
   */
  mayRepeat?(id: string): boolean;
  /**
   * Finishes the messages in progress, or gives them up when the signal aborts. Afterwards another host may open the
   * key. Never rejects.
   */
  close(signal: AbortSignal): Promise<void>;
}

export interface HostedContext {
  /**
   * Resolves with true if this host surely owns the key's shard. An answer that no durable record proves must wait
   * for this check.
   */
  confirm(): Promise<boolean>;
  /** True while mail with another message name waits behind the present delivery. */
  hasOtherMail(): boolean;
  /**
   * Ends the instance, because it has failed or was fenced out. Waiting calls are sent again, and the next message
   * opens a new instance.
   */
  end(error: Error): void;
  /** Aborts when the host gives the key up without waiting for messages in progress. */
  signal: AbortSignal;
}

export interface HostedDefinition<M extends Messages> {
  contract: Contract<M>;
  /** How long an instance without messages stays open. */
  idleMs: number;
  /**
   * Opens an instance of a key. Throws ActorError to refuse the waiting messages. After any other error, mail is
   * retried.
   */
  open(key: string, context: HostedContext): Promise<HostedInstance<M>>;
  /**
   * Called for mail that the instance refused, or that failed too often. Notifies those who wait for the outcome of
   * the mail. Returns true if no dead letter is needed.
   */
  refused?(
    key: string,
    mail: Pick<HostedMessage<M>, "message" | "input">,
    error: Error,
  ): Promise<boolean>;
}

// biome-ignore lint/suspicious/noExplicitAny: the one place where instances of different kinds meet.
export type AnyHostedDefinition = HostedDefinition<any>;

export function defineHosted<M extends Messages>(
  definition: HostedDefinition<M>,
): HostedDefinition<M> {
  return definition;
}
