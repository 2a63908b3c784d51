// SPDX-License-Identifier: Apache-2.0

// podresources asks the kubelet what it offers and who holds what:
//
//	podresources allocatable   devices by resource, as JSON
//	podresources list          pods, containers and their devices, as JSON
//	podresources watch         a line whenever what is allocatable changes, until it is ended
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const socket = "unix:///var/lib/kubelet/pod-resources/kubelet.sock"

type holder struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	Container string   `json:"container"`
	Resource  string   `json:"resource"`
	Devices   []string `json:"devices"`
}

func allocatable(client podresources.PodResourcesListerClient) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	answer, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return byResource(answer.GetDevices()), nil
}

// byResource puts together what the kubelet tells apart: an entry for each device or NUMA node.
func byResource(entries []*podresources.ContainerDevices) map[string][]string {
	found := map[string][]string{}
	for _, entry := range entries {
		found[entry.GetResourceName()] = append(found[entry.GetResourceName()], entry.GetDeviceIds()...)
	}
	for _, ids := range found {
		sort.Strings(ids)
	}
	return found
}

func list(client podresources.PodResourcesListerClient) ([]holder, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	holders := []holder{}
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for resource, ids := range byResource(container.GetDevices()) {
				holders = append(holders, holder{pod.GetNamespace(), pod.GetName(), container.GetName(), resource, ids})
			}
		}
	}
	return holders, nil
}

func say(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

// watch says each change with its time; a kubelet that does not answer is one too.
func watch(client podresources.PodResourcesListerClient) {
	last := "never asked"
	for ; ; time.Sleep(20 * time.Millisecond) {
		counts := map[string]int{}
		found, err := allocatable(client)
		for name, ids := range found {
			counts[name] = len(ids)
		}
		text, _ := json.Marshal(counts)
		if now := fmt.Sprint(string(text), err != nil); now != last {
			last = now
			say(map[string]any{"time": float64(time.Now().UnixMicro()) / 1e6, "counts": counts, "answered": err == nil})
		}
	}
}

func main() {
	// A kubelet that comes back is to be seen at once, not when gRPC feels like trying again.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}, MinConnectTimeout: time.Second}
	connection, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(soon))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	client := podresources.NewPodResourcesListerClient(connection)
	var answer any
	switch os.Args[len(os.Args)-1] {
	case "allocatable":
		answer, err = allocatable(client)
	case "list":
		answer, err = list(client)
	case "watch":
		watch(client)
	default:
		err = fmt.Errorf("one of allocatable, list, watch")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say(answer)
}
